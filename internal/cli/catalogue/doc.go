// Package catalogue holds the commands about repositories in the cluster and about the packages
// they offer.
//
//	repo       creates, changes and deletes repositories, and waits for a fetch
//	available  offers of repositories ─► desired.Chooser ─► versions, and why one cannot be installed
//	bundle     packages and their images ─► a file ─► another registry
//
// Addresses of sources are printed without credentials.
package catalogue
