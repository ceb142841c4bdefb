// Package cluster is the connection of the command line to a cluster: it finds packages
// by name, watches them, and adds remedies to errors of the API server.
//
// Commands know the kinds of this project, so they make no discovery requests.
package cluster
