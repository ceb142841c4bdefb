package queueing

import "slices"

// Turns are items that wait, of which each namespace has one at its turn, in the order in which they came. The zero value is empty.
type Turns[T any] struct {
	// order of the namespaces with items; the next one is the first.
	order   []string
	waiting map[string][]T
	count   int
}

// Push appends an item to those of its namespace.
func (t *Turns[T]) Push(namespace string, item T) {
	if t.waiting == nil {
		t.waiting = map[string][]T{}
	}
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], item)
	t.count++
}

// Len returns how many items wait.
func (t *Turns[T]) Len() int { return t.count }

// Next returns the index in the order of the first namespace that may have its turn; -1 for none.
func (t *Turns[T]) Next(may func(namespace string) bool) int {
	return slices.IndexFunc(t.order, may)
}

// Peek returns the first item of the namespace at an index.
func (t *Turns[T]) Peek(at int) T { return t.waiting[t.order[at]][0] }

// Take takes the first item of the namespace at an index, whose next turn comes after those of all others.
func (t *Turns[T]) Take(at int) (item T, namespace string) {
	namespace = t.order[at]
	t.order = slices.Delete(t.order, at, at+1)
	items := t.waiting[namespace]
	item, items[0] = items[0], *new(T) // the array keeps nothing alive
	if items = items[1:]; len(items) == 0 {
		delete(t.waiting, namespace)
	} else {
		t.waiting[namespace] = items
		t.order = append(t.order, namespace)
	}
	t.count--
	return item, namespace
}

// Remove takes off an item that waits no more, and reports whether it waited.
func (t *Turns[T]) Remove(namespace string, is func(T) bool) bool {
	items := t.waiting[namespace]
	at := slices.IndexFunc(items, is)
	if at < 0 {
		return false
	}
	t.count--
	if items = slices.Delete(items, at, at+1); len(items) > 0 {
		t.waiting[namespace] = items
		return true
	}
	delete(t.waiting, namespace)
	t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == namespace })
	return true
}
