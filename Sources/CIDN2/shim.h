// What GateVocabulary needs of libidn2 2.3 and newer: domains in their ASCII form (IDNA2008 with the mapping of UTS 46).
#ifndef SENDGATE_CIDN2_SHIM_H
#define SENDGATE_CIDN2_SHIM_H

#include <idn2.h>

#endif
