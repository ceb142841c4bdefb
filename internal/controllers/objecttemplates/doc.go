// Package objecttemplates reconciles ObjectTemplates and ClusterObjectTemplates. A template renders one object, in steps
// that have a file each:
//
//	gather    the template, the finalizer, the contents of its sources (spec.go, values.go, both pure), the environment
//	render    the Go template, where an input has changed, into an object (output.go, pure)
//	decide    whether the object is written, or why not (pure)
//	act       claim and write it, remove the former ones (package engine, as for objects of packages)
//	report    the status (status.go, pure) and events
//	teardown  instead of all, where the template is being deleted
//
// Each source is watched by its name while a template names it, also before it exists or its kind is served. Its event
// enqueues the templates that name it, and no other. Contents are in memory: rendering takes no request.
//
// An object that the template does not control is never written. One that was rendered before, under another name or
// kind, is removed once the new one is there. A template that is invalid leaves the object as it is.
//
// Values of Secrets are in Secrets alone, unless the object is annotated, and in no message.
//
// Requests of a new template: the finalizer, the object, a status, an event. Of a changed source: the object of each
// template whose values changed. At rest there are none, and a restart only reads.
package objecttemplates
