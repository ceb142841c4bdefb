// Package objecttemplates reconciles ObjectTemplates and ClusterObjectTemplates. A template renders
// one object, in steps that have a file each:
//
//	gather    the template, the finalizer, the contents of its sources (spec.go, values.go, both pure), the environment
//	render    the Go template into an object (output.go, pure), if an input has changed
//	decide    whether the object is written, or why not (pure)
//	act       claim and write it, remove the former ones (package engine, as for objects of packages)
//	report    the status (status.go, pure) and events
//	teardown  replaces all other steps if the template is being deleted
//
// Each source is watched by its name while a template names it, also before it exists or its kind
// is served. Its event enqueues only the templates that name it. Contents are in memory, so that
// rendering does not take a request.
//
// An object that the template does not control is never written. An object that was rendered
// before, under another name or kind, is removed once the new one exists. An invalid template
// leaves the object as it is.
//
// Values of Secrets are only in Secrets, unless the object is annotated, and never in messages.
//
// A new template takes four requests: the finalizer, the object, a status, an event. A changed
// source takes the object of each template whose values changed. At rest there are none, and a
// restart only reads.
package objecttemplates
