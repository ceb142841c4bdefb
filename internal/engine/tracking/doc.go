// Package tracking knows, for the engine and its watches, the owner of every managed object, the template that it is compared with,
// and the fields of it that probes read. Of a live object it makes a compact record, and a change of one enqueues its owner.
package tracking
