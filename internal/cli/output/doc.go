// Package output prints results for programs: as JSON, as YAML, as names, or through a jq
// expression.
//
//	value ─► --query ─► -o json, yaml ─► escaped for a terminal ─► standard output
//
// An expression has no environment, no further input, no modules and no clock but jq's
// own `now`; its time, memory and output are limited (limits.Query*).
package output
