// Package migrate holds the commands that take over objects from other tools, and hand them back.
//
//	import   documents of kapp-controller become documents of this engine
//	adopt    annotation adoptable-by on the object ─► the engine adopts it, and drops the annotation
//	release  annotation deletion-policy: Keep, and a patch of the Package that deletes the object
//	         from its rendered objects ─► the engine releases it with the next revision
//	*engine  a whole Package Operator, with its packages
package migrate
