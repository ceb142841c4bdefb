// Package imports holds the command import: documents of kapp-controller become Packages and PackageRepositories, or a package
// by the user's own ytt and helm. It reads no cluster.
package imports
