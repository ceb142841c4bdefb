// Package catalogue holds the commands about repositories in the cluster, and about what they offer.
package catalogue
