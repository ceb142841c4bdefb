package probes

import (
	"runtime"
	"sync"
	"weak"
)

// programs shares compiled expressions between all Sets in use, and keeps none alive.
type programs[T any] struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[T]
}

// get returns the shared program of text, or compiles it. Errors are not cached.
func (p *programs[T]) get(text string, compile func(string) (*T, error)) (*T, error) {
	p.mu.Lock()
	found := p.byText[text].Value()
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := compile(text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.byText[text].Value(); found != nil {
		return found, nil // of another goroutine
	}
	if p.byText == nil {
		p.byText = map[string]weak.Pointer[T]{}
	}
	p.byText[text] = weak.Make(made)
	runtime.AddCleanup(made, p.drop, text)
	return made, nil
}

// drop removes a program that was collected, unless a new one replaces it.
func (p *programs[T]) drop(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText[text].Value() == nil {
		delete(p.byText, text)
	}
}
