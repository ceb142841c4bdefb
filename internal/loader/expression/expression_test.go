package expression

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

func TestBool(t *testing.T) {
	t.Parallel()
	e := New(map[string]any{
		"package": map[string]any{"metadata": map[string]any{"name": "shop", "namespace": ""}},
		"config":  map[string]any{"replicas": 2.0, "on": true, "name": "x", "list": make([]any, 1000)},
	})
	with := e.WithConditions(map[string]bool{"yes": true, "no": false})
	deep := strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 12) + "true" + strings.Repeat(")", 12)
	for _, test := range []struct {
		text, want string
	}{
		{"true", "true"}, {"config.replicas > 1", "true"}, {".config.replicas == 3", "false"}, {"config.on", "true"},
		{"has(config.missing)", "false"}, {"'kubernetes' in environment", "false"}, {"package.metadata.name == ''", "reserved identifier: package"},
		{"config.missing", "no such key: missing"}, {"config.name", "the result is a string, not a bool"}, {"1 + 1", "of type int, not bool"},
		{"config.", "column"}, {"unknown", "undeclared reference to 'unknown'"}, {"", "the expression is empty"},
		{strings.Repeat("x", limits.ExpressionBytes+1), fmt.Sprintf("the limit is %d", limits.ExpressionBytes)},
		{deep, "cost limit exceeded"}, {strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), "column"},
	} {
		start := time.Now()
		got, err := e.Bool(context.Background(), test.text)
		if text := fmt.Sprint(got); err != nil && !strings.Contains(err.Error(), test.want) || err == nil && text != test.want {
			t.Errorf("%.60s: %v, %v", test.text, got, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%.60s: took %v", test.text, d)
		}
	}
	if got, err := with.Bool(context.Background(), "cond.yes && !cond.no && config.on"); !got || err != nil {
		t.Error(err)
	}
	if _, err := e.Bool(context.Background(), "cond.yes"); err == nil {
		t.Error("conditions cannot refer to each other")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Bool(ctx, "config.list.all(x, config.list.all(y, x == y))"); err == nil {
		t.Error("the context is ignored")
	}
}
