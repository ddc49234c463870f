/* Rows that are made up, so that the people of a class have the values that they need. */
#ifndef MONDRIAN_OPS_COUNTERFEITS_H
#define MONDRIAN_OPS_COUNTERFEITS_H

#include "signatures.h"

enum {
  MADE_UP = 2, /* rows that are made up for a class, at most; as in invariance.py */
  COUNTERFEIT_ROOM = 4 + MADE_UP,
};

/* Chooses the rows that are made up for a class; counterfeits.c has the rule.
 *
 * values (2, words): those of one row of the class or more, of two or more; tonight (2, words): the
 * same of all rows of the night; random (rows, MADE_UP): decides which of the values that would do
 * are taken, NULL for the first ones; room (COUNTERFEIT_ROOM, words): anything. Sets made_up
 * (MADE_UP,) and returns how many rows there are, 0 if nobody lacks a value; -1 if none may be made
 * up. */
int64_t choose_counterfeits(const people *who, const int32_t *member, int64_t size,
                            const uint64_t *values, const uint64_t *tonight, const uint32_t *random,
                            uint64_t *room, int32_t *made_up);

#endif
