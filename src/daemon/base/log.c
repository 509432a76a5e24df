/*
 * log.c
 *	  Writes log lines; see log.h.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void
gj_log(GjLogLevel level, const char *format,...)
{
	static const char *const prefix[] = {"LOG: ", "WARNING: ", "ERROR: "};
	char		line[1024];
	va_list		args;
	int			n;
	int			room = sizeof(line) - 1;

	n = snprintf(line, sizeof(line), "%s", prefix[level]);
	va_start(args, format);
	n += vsnprintf(line + n, room - n, format, args);
	va_end(args);
	if (n > room - 1)
		n = room - 1;
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n++] = '\n';

	/* nobody is left to tell if this fails */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}
