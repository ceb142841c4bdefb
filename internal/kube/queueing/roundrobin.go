package queueing

import "slices"

// roundRobin holds waiting items. It returns one item of each namespace after the other, and the
// items of one namespace in the order of their arrival. The zero value is empty.
type roundRobin[T any] struct {
	// order of the namespaces with items; the next one is the first.
	order   []string
	waiting map[string][]T
	count   int
}

// push appends an item to its namespace's.
func (r *roundRobin[T]) push(namespace string, item T) {
	if r.waiting == nil {
		r.waiting = map[string][]T{}
	}
	if len(r.waiting[namespace]) == 0 {
		r.order = append(r.order, namespace)
	}
	r.waiting[namespace] = append(r.waiting[namespace], item)
	r.count++
}

// next returns the index in the order of the first namespace whose first item may be taken; -1 for
// none.
func (r *roundRobin[T]) next(may func(namespace string, first T) bool) int {
	return slices.IndexFunc(r.order, func(namespace string) bool { return may(namespace, r.waiting[namespace][0]) })
}

// take removes the first item of the namespace at an index. All other namespaces come before its
// next one.
func (r *roundRobin[T]) take(at int) (item T, namespace string) {
	namespace = r.order[at]
	r.order = slices.Delete(r.order, at, at+1)
	items := r.waiting[namespace]
	item, items[0] = items[0], *new(T) // the array keeps nothing alive
	if items = items[1:]; len(items) == 0 {
		delete(r.waiting, namespace)
	} else {
		r.waiting[namespace] = items
		r.order = append(r.order, namespace)
	}

	r.count--
	return item, namespace
}

// remove removes an item that no longer waits.
func (r *roundRobin[T]) remove(namespace string, is func(T) bool) {
	items := r.waiting[namespace]
	at := slices.IndexFunc(items, is)
	if at < 0 {
		return
	}

	r.count--
	if items = slices.Delete(items, at, at+1); len(items) > 0 {
		r.waiting[namespace] = items
		return
	}

	delete(r.waiting, namespace)
	r.order = slices.DeleteFunc(r.order, func(other string) bool { return other == namespace })
}
