from mondrian_ops.catalogue.database import Catalogue as Catalogue
from mondrian_ops.catalogue.opening import current as current
from mondrian_ops.catalogue.opening import use as use
from mondrian_ops.catalogue.place import Place as Place
