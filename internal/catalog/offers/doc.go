// Package offers gathers the versions of a package that a namespace, or the cluster, can choose
// from. It is pure.
//
// Its input is the AvailablePackages of the namespace's own repositories and of cluster
// repositories; its output are the candidates of package versions, or the package that provides an
// API. The controllers, the command line and the resolver share it, so that all of them see the
// same offers.
package offers
