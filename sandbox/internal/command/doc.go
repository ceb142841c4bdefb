// Package command is the command line of the sandbox: thin wrappers that read
// flags, call package cluster and print.
//
// Every command takes --name (or a data folder with --data) and exits with 0 on
// success, 1 on failure and 2 on wrong usage. With --output json it prints one
// JSON document to standard output; progress goes to standard error.
package command
