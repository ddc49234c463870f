from mondrian_ops.series.beside import refuse_beside as refuse_beside
from mondrian_ops.series.commit import committed as committed
from mondrian_ops.series.commit import confirm as confirm
from mondrian_ops.series.commit import waiting_in as waiting_in
from mondrian_ops.series.gathering import check_types as check_types
from mondrian_ops.series.gathering import gather as gather
from mondrian_ops.series.history import boundaries_of as boundaries_of
from mondrian_ops.series.history import held as held
from mondrian_ops.series.history import was_held as was_held
from mondrian_ops.series.intersection.counterfeits import content_of as content_of
from mondrian_ops.series.intersection.counterfeits import (
    without_counterfeits as without_counterfeits,
)
from mondrian_ops.series.intersection.forming import form_classes as form_classes
from mondrian_ops.series.intersection.night import Outcome as Outcome
from mondrian_ops.series.intersection.night import checked as checked
from mondrian_ops.series.naming import COUNTERFEITS as COUNTERFEITS
from mondrian_ops.series.naming import label_of as label_of
from mondrian_ops.series.naming import name_of_series as name_of_series
from mondrian_ops.series.naming import output_of as output_of
from mondrian_ops.series.naming import place_of as place_of
from mondrian_ops.series.naming import series_name as series_name
from mondrian_ops.series.nights import ask_to_refit as ask_to_refit
from mondrian_ops.series.nights import check_new as check_new
from mondrian_ops.series.nights import settle as settle
from mondrian_ops.series.sweeping import sweep as sweep
