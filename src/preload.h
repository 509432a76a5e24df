/*
 * preload.h
 *	  In which sessions of a database the library is loaded.
 */
#ifndef GJ_PRELOAD_H
#define GJ_PRELOAD_H

/*
 * True if the extension is in this database: without it nothing is offloaded.  Within a
 * transaction; remembered until that may have changed.
 */
extern bool gj_extension_present(void);

/* Sets the hook that makes DROP EXTENSION undo gpujoin_enable(); called by _PG_init. */
extern void gj_preload_init(void);

#endif							/* GJ_PRELOAD_H */
