package invariants

// Writers judges invariant 3: once a newer revision wrote an object, no older
// one does. It reports nothing if the revisions of writes are unknown.
func (s Step) Writers() []Violation {
	if s.Revision == nil {
		return nil
	}
	var found []Violation
	newest := map[Object]int64{}
	for _, e := range s.applied() {
		o, revision := Of(e), s.Revision(e)
		if revision == 0 {
			continue
		}
		if revision < newest[o] {
			found = append(found, s.violation(3, "revision %d wrote %s at %s, after revision %d had written it", revision, o, stamp(e.Received), newest[o]))
		}
		newest[o] = max(newest[o], revision)
	}
	return found
}
