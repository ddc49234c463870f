/* Sixteen bytes in a register, and look-ups of all of them at once, where the processor has those.
 *
 * look_up takes numbers below BYTES; look_up_within those below 128, of which the ones that are not
 * below BYTES find 0. */
#ifndef MONDRIAN_OPS_BYTES_H
#define MONDRIAN_OPS_BYTES_H

enum { BYTES = 16 };

#if defined(WITHOUT_LOOK_UPS) /* tests: as on a processor of another kind */
#elif defined(__SSSE3__)
#include <tmmintrin.h>
typedef __m128i bytes;
static inline bytes load(const unsigned char *from) {
  return _mm_loadu_si128((const __m128i *)(const void *)from);
}
static inline void store(unsigned char *into, bytes from) {
  _mm_storeu_si128((__m128i *)(void *)into, from);
}
static inline bytes look_up(bytes in, bytes at) { return _mm_shuffle_epi8(in, at); }
static inline bytes either(bytes one, bytes other) { return _mm_or_si128(one, other); }
static inline bytes sum(bytes one, bytes other) { return _mm_add_epi8(one, other); }
static inline bytes difference(bytes one, bytes other) { return _mm_sub_epi8(one, other); }
static inline bytes unlike(bytes one, bytes other) { return _mm_xor_si128(one, other); }
static inline bytes repeated(unsigned char one) { return _mm_set1_epi8((char)one); }
static inline bytes look_up_within(bytes in, bytes at) {
  return look_up(in, sum(at, repeated(128 - BYTES))); /* 0 where the highest bit is set */
}
#define MOVED(from, by) _mm_slli_si128(from, by) /* byte i becomes byte i + by */
#elif defined(__aarch64__)
#include <arm_neon.h>
typedef uint8x16_t bytes;
static inline bytes load(const unsigned char *from) { return vld1q_u8(from); }
static inline void store(unsigned char *into, bytes from) { vst1q_u8(into, from); }
static inline bytes look_up(bytes in, bytes at) { return vqtbl1q_u8(in, at); }
static inline bytes either(bytes one, bytes other) { return vorrq_u8(one, other); }
static inline bytes sum(bytes one, bytes other) { return vaddq_u8(one, other); }
static inline bytes difference(bytes one, bytes other) { return vsubq_u8(one, other); }
static inline bytes unlike(bytes one, bytes other) { return veorq_u8(one, other); }
static inline bytes repeated(unsigned char one) { return vdupq_n_u8(one); }
static inline bytes look_up_within(bytes in, bytes at) { return look_up(in, at); }
#define MOVED(from, by) vextq_u8(vdupq_n_u8(0), from, BYTES - (by))
#else
#define WITHOUT_LOOK_UPS
#endif

#endif
