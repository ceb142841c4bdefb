// Package clustertest has an in-memory cluster and objects for it, for tests of commands.
package clustertest
