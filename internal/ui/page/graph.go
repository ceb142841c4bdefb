package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// box is a node of a drawing.
type box struct {
	X, Y       int
	Title, Sub string
	// Full is what the box is called at length, and State how that is, in words.
	Full, State    string
	Tone           Tone
	Link           string
	Focus, Missing bool
}

// Label is read by a screen reader: it begins with the visible text.
func (b box) Label() string {
	return strings.TrimSuffix(b.Title+" "+b.Sub+", "+b.State, ", ")
}

type stroke struct {
	Path string
	// Class is bad for requirements that are not satisfied, optional for those that need not be.
	Class string
	Label string
}

type drawing struct {
	Width, Height int
	Boxes         []box
	Edges         []stroke
	// Lead describes the drawing, and More the parts left out.
	Lead, More string
	Command    string
	BoxWidth   int
	BoxHeight  int
	TextX      int
}

// Measures of a drawing, in pixels.
const (
	boxWidth, boxHeight = 216, 46
	columnGap, rowGap   = 74, 14
	bendHeight          = 14
	margin              = 10
	boxText             = 24 // runes
)

type edge struct {
	from, to        int
	class, labelled string
}

// GraphOf draws which package depends on which: around one that is named as in PackagePath, else all of them, or namespaces where
// these are too many.
func GraphOf(f Frame, g *graph.Graph, around string) *Page {
	p := newPage(f, "graph", "Dependencies", "graph", "graph/stream"+query("package", around))
	var d drawing
	switch {
	case around != "":
		d = drawAround(f, g, around)
	default:
		d = drawAll(f, g)
	}
	p.fragment("drawing", d)
	return p
}

func drawAround(f Frame, g *graph.Graph, around string) drawing {
	var node *graph.Node
	for _, n := range g.All() {
		if PackagePath(n.Target()) == around {
			node = n
		}
	}
	if node == nil {
		return drawing{Lead: "There is no such package, as far as you may read."}
	}
	keys, left := g.Around(node, GraphNodes)
	d := drawPackages(f, g, keys, node.Key)
	d.Lead = "What " + node.Key.String() + " depends on is on its right, what depends on it on its left."
	if d.Command = "kubectl package deps " + node.Target().Flags(); left > 0 {
		d.More = fmt.Sprintf("%s further away are not drawn: %s -o dot prints them for another program.", terminal.Count(left, "package"), d.Command)
	}
	return d
}

func drawAll(f Frame, g *graph.Graph) drawing {
	var keys []graph.Key
	alone := 0
	seen := map[graph.Key]bool{}
	for _, n := range g.All() {
		if len(n.Dependencies) == 0 && len(n.Dependents) == 0 {
			alone++
			continue
		}
		if !seen[n.Key] {
			seen[n.Key], keys = true, append(keys, n.Key)
		}
		for _, e := range n.Dependencies {
			if e.To != nil && !seen[*e.To] {
				seen[*e.To], keys = true, append(keys, *e.To)
			}
		}
	}
	var d drawing
	if len(keys) > GraphNodes {
		d = drawGroups(f, g)
	} else {
		slices.SortFunc(keys, func(a, b graph.Key) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		d = drawPackages(f, g, keys, graph.Key{})
		d.Lead = "A package stands left of what it depends on."
	}
	if alone > 0 {
		d.More = strings.TrimSpace(d.More + " " + fmt.Sprintf("%s on their own are not drawn.", terminal.Count(alone, "package")))
	}
	d.Command = "kubectl package deps -A -o dot"
	return d
}

func drawPackages(f Frame, g *graph.Graph, keys []graph.Key, focus graph.Key) drawing {
	index := map[graph.Key]int{}
	boxes := make([]box, len(keys))
	for i, k := range keys {
		index[k] = i
		b := box{Title: cut(k.Name), Full: line(k.String()), Link: f.Base + PackagePath(k.Target()), Sub: cut(cmp.Or(k.Namespace, "cluster")), Tone: ToneIdle, Focus: k == focus}
		if n := g.Node(k); n != nil {
			b.Tone = toneOf(n.Summary)
			b.State = n.Summary.Words()
			if n.Version != "" {
				b.Sub = cut(cmp.Or(k.Namespace, "cluster") + " · " + n.Version)
			}
		} else {
			b.Missing, b.Link = true, ""
			b.State = "not read, or gone"
		}
		boxes[i] = b
	}
	var edges []edge
	for i, k := range keys {
		n := g.Node(k)
		if n == nil {
			continue
		}
		for _, e := range n.Dependencies {
			if e.To == nil {
				continue
			}
			to, shown := index[*e.To]
			if !shown {
				continue
			}
			class := ""
			switch {
			case !e.Satisfied:
				class = "bad"
			case e.Optional:
				class = "optional"
			}
			edges = append(edges, edge{i, to, class, line(strings.TrimSpace(e.Name + ": " + e.Package + " " + e.Range))})
		}
	}
	return draw(boxes, edges)
}

// drawGroups draws namespaces, with how many packages of one depend on those of another.
func drawGroups(f Frame, g *graph.Graph) drawing {
	type group struct {
		name    string
		n       int
		worst   progress.Summary
		related int
	}
	all, groups := []*group(nil), map[string]*group{}
	of := func(k graph.Key) *group {
		name := cmp.Or(k.Namespace, ofCluster)
		if groups[name] == nil {
			groups[name] = &group{name: name}
		}
		return groups[name]
	}
	counts := map[[2]string]int{}
	unmet := map[[2]string]bool{}
	for _, n := range g.All() {
		own := of(n.Key)
		own.n++
		if own.worst == "" || n.Summary.Urgency() < own.worst.Urgency() {
			own.worst = n.Summary
		}
		for _, e := range n.Dependencies {
			if e.To == nil {
				continue
			}
			other := of(*e.To)
			if pair := [2]string{own.name, other.name}; own != other {
				counts[pair]++
				unmet[pair] = unmet[pair] || !e.Satisfied
				own.related++
				other.related++
			}
		}
	}
	for _, one := range groups {
		if one.related > 0 {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Or(cmp.Compare(b.related, a.related), cmp.Compare(a.name, b.name)) })
	left := max(len(all)-GraphNodes, 0)
	all = all[:len(all)-left]
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	index, boxes := map[string]int{}, make([]box, len(all))
	for i, one := range all {
		index[one.name] = i
		b := box{Title: cut(one.name), Sub: terminal.Count(one.n, "package"), Full: line(one.name), Link: f.Base + "packages" + query("namespace", one.name), Tone: ToneIdle}
		if one.worst != "" {
			b.Tone, b.Sub = toneOf(one.worst), cut(b.Sub+" · "+one.worst.Words())
		}
		boxes[i] = b
	}
	var edges []edge
	for pair, n := range counts {
		from, known := index[pair[0]]
		to, both := index[pair[1]]
		if known && both {
			class := ""
			if unmet[pair] {
				class = "bad"
			}
			edges = append(edges, edge{from, to, class, fmt.Sprintf("dependencies: %d", n)})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	d := draw(boxes, edges)
	d.Lead = "There are too many packages for one drawing: these are namespaces. The page of a package draws what is around it."
	if left > 0 {
		d.More = fmt.Sprintf("%s with fewer dependencies are not drawn.", terminal.Count(left, "namespace"))
	}
	return d
}

func draw(boxes []box, edges []edge) drawing {
	d := drawing{BoxWidth: boxWidth, BoxHeight: boxHeight, TextX: 36}
	pairs := make([][2]int, len(edges))
	for i, e := range edges {
		pairs[i] = [2]int{e.from, e.to}
	}
	l := graph.Layered(len(boxes), pairs)
	heights := make([]int, len(l.Columns))
	for c, nodes := range l.Columns {
		for _, node := range nodes {
			heights[c] += rowGap + heightOf(node, len(boxes))
		}
		d.Height = max(d.Height, heights[c]-rowGap)
	}
	middle := map[int][2]int{} // left end and middle of boxes and bends
	for c, nodes := range l.Columns {
		y := margin + (d.Height-heights[c]+rowGap)/2
		for _, node := range nodes {
			middle[node] = [2]int{margin + c*(boxWidth+columnGap), y + heightOf(node, len(boxes))/2}
			y += heightOf(node, len(boxes)) + rowGap
		}
	}
	for i := range boxes {
		boxes[i].X, boxes[i].Y = middle[i][0], middle[i][1]-boxHeight/2
	}
	for i, path := range l.Paths {
		d.Edges = append(d.Edges, stroke{Path: curve(path, middle), Class: edges[i].class, Label: edges[i].labelled})
	}
	d.Boxes = boxes
	d.Width = 2*margin + len(l.Columns)*(boxWidth+columnGap) - columnGap
	d.Height += 2 * margin
	return d
}

func heightOf(node, boxes int) int {
	if node < boxes {
		return boxHeight
	}
	return bendHeight
}

// curve leads from the right side of a box through bends to the left side of another.
func curve(path []int, at map[int][2]int) string {
	var b strings.Builder
	x, y := at[path[0]][0]+boxWidth, at[path[0]][1]
	fmt.Fprintf(&b, "M%d %d", x, y)
	for i, node := range path[1:] {
		toX, toY := at[node][0], at[node][1]
		bend := columnGap / 2
		if toX < x { // back, in a cycle
			bend = columnGap
		}
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", x+bend, y, toX-bend, toY, toX, toY)
		if x, y = toX, toY; i < len(path)-2 {
			x += boxWidth
			fmt.Fprintf(&b, "H%d", x)
		}
	}
	return b.String()
}

// cut shortens a text to the width of a box.
func cut(text string) string {
	if runes := []rune(line(text)); len(runes) > boxText {
		return string(runes[:boxText-1]) + "…"
	}
	return line(text)
}
