package measure

import (
	"context"
	"sync"
)

// parallel calls f for 0 to n-1 from a number of workers, and returns the first
// error; the worker that meets it stops.
func parallel(workers, n int, f func(worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range next {
				if err := f(worker, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}
