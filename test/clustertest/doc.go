// Package clustertest has a cluster in memory and objects for it, for tests of commands.
package clustertest
