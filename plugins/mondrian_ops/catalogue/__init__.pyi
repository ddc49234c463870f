from mondrian_ops.catalogue.database import Catalogue as Catalogue
from mondrian_ops.catalogue.place import Place as Place
from mondrian_ops.catalogue.place import current as current
from mondrian_ops.catalogue.place import use as use
