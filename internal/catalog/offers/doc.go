// Package offers gathers the versions of a package that a namespace, or the cluster, may choose from. It is pure.
package offers
