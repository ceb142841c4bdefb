// Package output prints results for programs: as JSON, as YAML or as names, escaped for a terminal.
package output
