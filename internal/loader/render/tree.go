package render

import (
	"strings"
	"text/template/parse"
)

// These are the functions of injected nodes. Templates cannot call them, because the parser does
// not know them.
const (
	funcEnter = "lockstepEnter"
	funcLeave = "lockstepLeave"
	funcTick  = "lockstepTick"
	funcOut   = "lockstepOut"
)

// builtins are the functions of text/template, which its parser has to know.
var builtins = map[string]any{}

func init() {
	for _, name := range strings.Fields("and call html index slice js len not or print printf println urlquery eq ge gt le lt ne") {
		builtins[name] = true
	}
}

// injected are the nodes that are added to each template. All templates share them, since executing
// does not change nodes.
type injected struct {
	enter, leave, tick parse.Node
	out                *parse.CommandNode
}

// newInjected parses the nodes from text, because the package parse has no constructors for them.
func newInjected() (*injected, error) {
	tree := parse.New("limits")
	tree.Mode = parse.SkipFuncCheck
	text := "{{" + strings.Join([]string{funcEnter, funcLeave, funcTick, funcOut}, "}}{{") + "}}"
	if _, err := tree.Parse(text, "", "", map[string]*parse.Tree{}); err != nil {
		return nil, err
	}
	n := tree.Root.Nodes
	return &injected{n[0], n[1], n[2], n[3].(*parse.ActionNode).Pipe.Cmds[0]}, nil
}

// inject makes a tree count template calls, iterations, and the size of its output.
func (i *injected) inject(tree *parse.Tree) {
	if tree.Root == nil {
		return
	}
	i.list(tree.Root)
	tree.Root.Nodes = append(append([]parse.Node{i.enter}, tree.Root.Nodes...), i.leave)
}

// list adds nodes to a list and everything below it. Actions that declare a variable print nothing.
func (i *injected) list(l *parse.ListNode) {
	if l == nil {
		return
	}

	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, i.out)
			}
		case *parse.IfNode:
			i.list(n.List)
			i.list(n.ElseList)
		case *parse.WithNode:
			i.list(n.List)
			i.list(n.ElseList)
		case *parse.RangeNode:
			i.list(n.List)
			i.list(n.ElseList)
			n.List.Nodes = append([]parse.Node{i.tick}, n.List.Nodes...)
		}
	}
}
