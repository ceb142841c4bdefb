// Package output prints what a command found for programs: as JSON, as YAML, as
// names, or what a jq expression makes of it.
//
//	value ─► --query ─► -o json, yaml ─► escaped for a terminal ─► standard output
//
// Commands that print objects or plans have a [Flags], check it before they do
// anything, and print text for people only where [Flags.Wanted] is false. What
// --query sees is what -o json prints.
//
// An expression has no environment, no further input, no modules and no clock
// but jq's own `now`; its time, memory and output are bounded (limits.Query*).
package output
