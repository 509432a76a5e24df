/*
 * device_functions.h
 *	  The built-in functions that the device knows, and how each becomes device code.
 */
#ifndef GJ_DEVICE_FUNCTIONS_H
#define GJ_DEVICE_FUNCTIONS_H

/* What a function needs besides its instruction. */
#define GJ_CALL_FAILS		0x0001	/* it can fail on data */
#define GJ_CALL_NOT			0x0002	/* its result is negated */
#define GJ_CALL_COLLATED	0x0004	/* the collation must be deterministic */
#define GJ_CALL_BYTE_ORDER	0x0008	/* the collation must order by bytes */
#define GJ_CALL_CHARACTERS	0x0010	/* the device must know the encoding; arg: is it UTF-8 */
#define GJ_CALL_PADDED		0x0020	/* trailing blanks of the arguments do not count */
#define GJ_CALL_DECIMAL		0x0040	/* arguments are brought to one scale */
#define GJ_CALL_FLOAT4		0x0080	/* the result is rounded to float4 */
#define GJ_CALL_LEFT_DATE	0x0100	/* this argument is a date, the other one a timestamp */
#define GJ_CALL_RIGHT_DATE	0x0200
/* arguments become what the other one is */
#define GJ_CALL_CONVERTS	(GJ_CALL_DECIMAL | GJ_CALL_LEFT_DATE | GJ_CALL_RIGHT_DATE)
#define GJ_CALL_ARRAYS		0x0400	/* the arguments are columns of integer arrays */

typedef struct GjDeviceFunction
{
	Oid			funcid;
	uint16		op;				/* GjOp; GJ_NOPS: see compile_special() in device_call.c */
	uint8		nargs;
	uint8		arg;			/* GjInstr.arg */
	uint16		flags;			/* GJ_CALL_* */
} GjDeviceFunction;

/* NULL if the device does not know the function. */
extern const GjDeviceFunction *gj_device_function(Oid funcid);

#endif							/* GJ_DEVICE_FUNCTIONS_H */
