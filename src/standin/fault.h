/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_STANDIN_FAULT_H
#define ALLOTI_STANDIN_FAULT_H

struct standin;

/**
 * From now on a host access to a device address ends with a message that names the address and the
 * allocation, before whatever handled it until now. Beside the report it is left in a file.
 */
void fault_install(const struct standin *state);

#endif /* ALLOTI_STANDIN_FAULT_H */
