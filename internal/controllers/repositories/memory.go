package repositories

// catalogueOf returns the catalogue of a namespace, and whether it was known before.
func (r *Reconciler) catalogueOf(namespace string) (c *catalogue, known bool) {
	r.memory.Lock()
	defer r.memory.Unlock()
	if c = r.memory.catalogues[namespace]; c != nil {
		return c, true
	}

	c = &catalogue{
		states: map[string]*state{}, pending: map[string]struct{}{},
		published: map[string]published{}, conflicts: map[string]map[string][]string{},
	}

	if r.memory.catalogues == nil {
		r.memory.catalogues = map[string]*catalogue{}
	}

	r.memory.catalogues[namespace] = c
	return c, false
}

// drop forgets a namespace without repositories.
func (r *Reconciler) drop(namespace string) {
	r.memory.Lock()
	defer r.memory.Unlock()
	delete(r.memory.catalogues, namespace)
}
