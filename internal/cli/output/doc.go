// Package output prints results for programs: as JSON, as YAML or as names, escaped for a terminal.
//
//	value ─► Flags.Write ─┬─► JSON, YAML or names   with -o
//	                      └─► text of the command   without it
//
// The bytes are safe on a terminal, and a parser still reads the same value.
package output
