// Package migrate holds the commands that take over what other tools have installed, and hand it back.
//
//	import   documents of kapp-controller become documents of this engine
//	adopt    annotation adoptable-by on the object ─► the engine adopts it, and drops the annotation
//	release  annotation deletion-policy: Keep, and a patch of the Package that deletes the object
//	         from what it renders ─► the engine releases it with the next revision
//	*engine  a whole Package Operator, with its packages
package migrate
