// Package migrate holds the commands that take over what other tools have installed, and hand it back.
//
//	imports  the command import: documents of kapp-controller become those of this engine
//	adopt    objects in the cluster, releases of Helm and apps of kapp become a package; release hands objects back
//	*engine  a whole Package Operator, with its packages
package migrate
