// Package catalogue holds the commands about repositories in the cluster and about the packages
// they offer.
package catalogue
