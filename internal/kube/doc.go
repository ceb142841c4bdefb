// Package kube holds what every controller needs beside controller-runtime.
//
//	conditions     status conditions, as kstatus reads them
//	statuswriter   writes the status of one object of the API group
//	mutationcache  responses to writes, until the informers have them
//	queueing       how much a controller has to do; short work goes past long work
//	background     work that takes long, one attempt of each owner at a time
//	leadership     no write without the Lease
//	panics         errors of recovered panics
//	webhooks       denials by admission webhooks
package kube
