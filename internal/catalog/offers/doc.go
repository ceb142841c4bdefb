// Package offers gathers the versions of a package that a namespace, or the cluster, can choose
// from. It is pure.
package offers
