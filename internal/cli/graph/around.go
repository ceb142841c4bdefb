package graph

import "slices"

// Around returns a package with all that it depends on and all that depends on it, the nearest first, at most so many; left is
// the number of the others. Keys that were not read are among them.
func (g *Graph) Around(n *Node, most int) (keys []Key, left int) {
	seen := map[Key]bool{n.Key: true}
	all, down, up := []Key{n.Key}, []Key{n.Key}, []Key{n.Key}
	step := func(from []Key, next func(*Node) []Key) (reached []Key) {
		for _, key := range from {
			node := g.byKey[key]
			if node == nil {
				continue
			}
			for _, k := range next(node) {
				if !seen[k] {
					seen[k], reached = true, append(reached, k)
				}
			}
		}
		return reached
	}
	for len(down)+len(up) > 0 {
		down = step(down, dependencies)
		up = step(up, func(n *Node) []Key { return n.Dependents })
		all = append(append(all, down...), up...)
	}
	left = max(len(all)-most, 0)
	keys = all[:len(all)-left]
	slices.SortFunc(keys, Key.compare)
	return keys, left
}

func dependencies(n *Node) (keys []Key) {
	for _, e := range n.Dependencies {
		if e.To != nil {
			keys = append(keys, *e.To)
		}
	}
	return keys
}

// All returns all nodes in their order. They are not to be changed.
func (g *Graph) All() []*Node { return g.nodes }
