package graph_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/graph"
)

// A chain, a diamond and an edge that passes a column.
func TestLayered(t *testing.T) {
	t.Parallel()
	l := graph.Layered(4, [][2]int{{0, 1}, {1, 2}, {0, 2}, {0, 3}, {3, 2}})
	if want := [][]int{{0}, {1, 4, 3}, {2}}; !reflect.DeepEqual(l.Columns, want) && !reflect.DeepEqual(l.Columns, [][]int{{0}, {1, 3, 4}, {2}}) {
		t.Errorf("columns %v", l.Columns)
	}
	if want := []int{0, 4, 2}; !slices.Equal(l.Paths[2], want) {
		t.Errorf("path %v", l.Paths[2])
	}
	// What nothing depends on stands next to what it needs.
	l = graph.Layered(4, [][2]int{{0, 1}, {1, 2}, {3, 2}})
	if want := [][]int{{0}, {1, 3}, {2}}; !reflect.DeepEqual(l.Columns, want) {
		t.Errorf("columns %v", l.Columns)
	}
}

// Every node stands once, edges lead to the right from column to column but those that close a cycle, and equal input has one
// layout.
func TestLayeredProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		var edges [][2]int
		for range r.IntN(80) {
			edges = append(edges, [2]int{r.IntN(n), r.IntN(n)})
		}
		cycles := seed%2 == 0
		if !cycles {
			for i, e := range edges {
				edges[i] = [2]int{min(e[0], e[1]), max(e[0], e[1])}
			}
			edges = slices.DeleteFunc(edges, func(e [2]int) bool { return e[0] == e[1] })
		}
		l := graph.Layered(n, edges)
		if again := graph.Layered(n, edges); !reflect.DeepEqual(l, again) {
			t.Fatalf("seed %d: two layouts", seed)
		}
		column := map[int]int{}
		for c, nodes := range l.Columns {
			for _, node := range nodes {
				if _, twice := column[node]; twice {
					t.Fatalf("seed %d: %d stands twice", seed, node)
				}
				column[node] = c
			}
		}
		for node := range n {
			if _, stands := column[node]; !stands {
				t.Fatalf("seed %d: %d does not stand anywhere", seed, node)
			}
		}
		for i, path := range l.Paths {
			if path[0] != edges[i][0] || path[len(path)-1] != edges[i][1] {
				t.Fatalf("seed %d: %v leads along %v", seed, edges[i], path)
			}
			for j := 1; !cycles && j < len(path); j++ {
				if column[path[j]] != column[path[j-1]]+1 {
					t.Fatalf("seed %d: %v leads from column %d to %d", seed, edges[i], column[path[j-1]], column[path[j]])
				}
			}
		}
	}
}

// Around a package are those that it depends on and those that depend on it, the nearest first, and none beside them.
func TestAround(t *testing.T) {
	t.Parallel()
	g := graph.Of([]corev1alpha1.GenericPackage{
		installed("shop/app", "app", "1.0.0", false, "web=shop/web"), installed("shop/web", "web", "1.0.0", false, "db=shop/db", "gone=shop/gone"),
		installed("shop/db", "db", "1.0.0", true, "op=op"), installed("op", "op", "1.0.0", false), installed("shop/beside", "beside", "1.0.0", false, "db=shop/db"),
	})
	web := g.Node(graph.Key{Kind: "Package", Namespace: "shop", Name: "web"})
	names := func(most int) (names []string, left int) {
		keys, left := g.Around(web, most)
		for _, k := range keys {
			names = append(names, k.Name)
		}
		return names, left
	}
	if got, left := names(10); !slices.Equal(got, []string{"op", "app", "db", "gone", "web"}) || left != 0 {
		t.Errorf("got %v, %d", got, left)
	}
	if got, left := names(3); !slices.Equal(got, []string{"db", "gone", "web"}) || left != 2 {
		t.Errorf("three: %v, %d", got, left)
	}
}
