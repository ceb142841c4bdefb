// Package command is shared by all commands: streams, the connection to a cluster and kubectl's
// flags, checks of arguments, tables, questions, and the wait for a package.
//
// It does not know any command. A command embeds Command, and completes a cobra.Command with About,
// Connects, AddWait and the other methods.
package command
