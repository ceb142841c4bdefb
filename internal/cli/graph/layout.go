package graph

import (
	"cmp"
	"slices"
)

// Layout is where the nodes of a drawing stand: in columns, those that depend on others left of these.
type Layout struct {
	// Columns have nodes from top to bottom. Numbers from the number of nodes on are bends of edges that pass a column.
	Columns [][]int
	// Paths are the nodes and bends of each edge, from its beginning to its end.
	Paths [][]int
}

// sweeps are the passes in which nodes move next to what they are connected with.
const sweeps = 4

// Layered lays out n nodes with edges from nodes to those that they depend on: columns by the longest path, orders by
// barycentres. It is deterministic. An edge that closes a cycle leads back.
func Layered(n int, edges [][2]int) Layout {
	forward := acyclic(n, edges)
	column := columnsOf(n, forward)
	l := Layout{Paths: make([][]int, len(edges))}
	next := n
	at := slices.Clone(column)
	for i, e := range forward {
		path := []int{e[0]}
		for c := column[e[0]] + 1; c < column[e[1]]; c++ {
			path, at = append(path, next), append(at, c)
			next++
		}
		if path = append(path, e[1]); e != edges[i] {
			slices.Reverse(path)
		}
		l.Paths[i] = path
	}
	for node, c := range at {
		for len(l.Columns) <= c {
			l.Columns = append(l.Columns, nil)
		}
		l.Columns[c] = append(l.Columns[c], node)
	}
	l.order(next)
	return l
}

// acyclic turns the edges that close a cycle around.
func acyclic(n int, edges [][2]int) [][2]int {
	out := make([][]int, n)
	for i, e := range edges {
		out[e[0]] = append(out[e[0]], i)
	}
	turned := slices.Clone(edges)
	const unseen, open, done = 0, 1, 2
	state := make([]int, n)
	var visit func(int)
	visit = func(node int) {
		state[node] = open
		for _, i := range out[node] {
			switch to := edges[i][1]; state[to] {
			case unseen:
				visit(to)
			case open:
				turned[i] = [2]int{to, node}
			}
		}
		state[node] = done
	}
	for node := range n {
		if state[node] == unseen {
			visit(node)
		}
	}
	return turned
}

// columnsOf returns the length of the longest path to each node; what nothing depends on stands next to what it needs.
func columnsOf(n int, edges [][2]int) []int {
	column, before := make([]int, n), make([]int, n)
	for _, e := range edges {
		if e[0] != e[1] {
			before[e[1]]++
		}
	}
	waits := slices.Clone(before)
	var ready []int
	for node := range n {
		if waits[node] == 0 {
			ready = append(ready, node)
		}
	}
	for len(ready) > 0 {
		node := ready[0]
		ready = ready[1:]
		for _, e := range edges {
			if e[0] != node || e[0] == e[1] {
				continue
			}
			column[e[1]] = max(column[e[1]], column[node]+1)
			if waits[e[1]]--; waits[e[1]] == 0 {
				ready = append(ready, e[1])
			}
		}
	}
	for node := range n {
		if before[node] > 0 {
			continue
		}
		nearest := -1
		for _, e := range edges {
			if e[0] == node && e[1] != node && (nearest < 0 || column[e[1]] < nearest) {
				nearest = column[e[1]]
			}
		}
		if nearest > 0 {
			column[node] = nearest - 1
		}
	}
	return column
}

// order sorts the nodes of each column by the middle of their neighbours, to and fro.
func (l *Layout) order(total int) {
	left, right := make([][]int, total), make([][]int, total)
	column := make([]int, total)
	for c, nodes := range l.Columns {
		for _, node := range nodes {
			column[node] = c
		}
	}
	for _, path := range l.Paths {
		for i := 1; i < len(path); i++ {
			a, b := path[i-1], path[i]
			if column[a] > column[b] {
				a, b = b, a
			}
			if column[a] != column[b] {
				right[a], left[b] = append(right[a], b), append(left[b], a)
			}
		}
	}
	position := make([]float64, total)
	place := func(c int) {
		for i, node := range l.Columns[c] {
			position[node] = float64(i) - float64(len(l.Columns[c])-1)/2
		}
	}
	for c := range l.Columns {
		place(c)
	}
	sweep := func(c int, neighbours [][]int) {
		middle := map[int]float64{}
		for _, node := range l.Columns[c] {
			if middle[node] = position[node]; len(neighbours[node]) > 0 {
				sum := 0.0
				for _, other := range neighbours[node] {
					sum += position[other]
				}
				middle[node] = sum / float64(len(neighbours[node]))
			}
		}
		slices.SortStableFunc(l.Columns[c], func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		place(c)
	}
	for range sweeps {
		for c := 1; c < len(l.Columns); c++ {
			sweep(c, left)
		}
		for c := len(l.Columns) - 2; c >= 0; c-- {
			sweep(c, right)
		}
	}
}
