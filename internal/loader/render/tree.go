package render

import (
	"text/template/parse"
)

// Functions of injected nodes. Templates cannot call them: they are unknown to the parser.
const (
	funcEnter = "lockstepEnter"
	funcLeave = "lockstepLeave"
	funcTick  = "lockstepTick"
	funcOut   = "lockstepOut"
)

// builtins are the names of text/template's own functions.
var builtins = map[string]any{}

func init() {
	for _, name := range []string{
		"and", "call", "html", "index", "slice", "js", "len", "not", "or", "print", "printf", "println", "urlquery",
		"eq", "ge", "gt", "le", "lt", "ne",
	} {
		builtins[name] = true
	}
}

// woven are the nodes that are put into every tree.
type woven struct {
	enter, leave, tick parse.Node
	out                *parse.CommandNode
}

func newWoven() (*woven, error) {
	action := func(text string) (parse.Node, error) {
		tree := parse.New("limits")
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(text, "", "", map[string]*parse.Tree{}); err != nil {
			return nil, err
		}
		return tree.Root.Nodes[0], nil
	}
	w := &woven{}
	for _, part := range []struct {
		into *parse.Node
		name string
	}{{&w.enter, funcEnter}, {&w.leave, funcLeave}, {&w.tick, funcTick}} {
		n, err := action("{{x}}")
		if err != nil {
			return nil, err
		}
		n.(*parse.ActionNode).Pipe.Cmds[0].Args[0].(*parse.IdentifierNode).Ident = part.name
		*part.into = n
	}
	n, err := action("{{x}}")
	if err != nil {
		return nil, err
	}
	w.out = n.(*parse.ActionNode).Pipe.Cmds[0]
	w.out.Args[0].(*parse.IdentifierNode).Ident = funcOut
	return w, nil
}

// inject makes a tree count template calls, iterations, and the size of what it prints.
func (w *woven) weave(tree *parse.Tree) {
	if tree.Root == nil {
		return
	}
	w.list(tree.Root)
	nodes := append([]parse.Node{w.enter}, tree.Root.Nodes...)
	tree.Root.Nodes = append(nodes, w.leave)
}

func (w *woven) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, w.out)
			}
		case *parse.IfNode:
			w.list(n.List)
			w.list(n.ElseList)
		case *parse.WithNode:
			w.list(n.List)
			w.list(n.ElseList)
		case *parse.RangeNode:
			w.list(n.List)
			w.list(n.ElseList)
			n.List.Nodes = append([]parse.Node{w.tick}, n.List.Nodes...)
		}
	}
}
