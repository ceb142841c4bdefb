// Package command is what all commands share: streams, the connection to a cluster and kubectl's flags, checks of
// arguments, tables, questions, and the wait for a package.
//
// It knows no command. A command embeds Command, and completes a cobra.Command by About, Connects, AddWait and the rest.
package command
