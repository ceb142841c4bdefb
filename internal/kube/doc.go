// Package kube has the packages that every controller needs in addition to controller-runtime.
//
//	conditions     status conditions, as kstatus reads them
//	statuswriter   writes the status of one object of the API group
//	mutationcache  responses to writes, until the informers have them
//	queueing       fair queues and semaphores by namespace
//	background     long work, one attempt per owner at a time
//	leadership     refuses writes without the Lease
//	panics         errors of recovered panics
//	webhooks       denials by admission webhooks
package kube
