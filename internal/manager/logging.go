package manager

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// levels by name, and by Package Operator's numbers.
var levels = map[string]zapcore.Level{
	"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "warn": zapcore.WarnLevel, "error": zapcore.ErrorLevel,
	"1": zapcore.DebugLevel, "0": zapcore.InfoLevel, "-1": zapcore.WarnLevel, "-2": zapcore.ErrorLevel,
}

// level returns the level of a name, in any case.
func level(name string) (zapcore.Level, error) {
	l, ok := levels[strings.ToLower(name)]
	if !ok {
		return 0, fmt.Errorf("%q is not one of debug, info, warn and error", name)
	}
	return l, nil
}

// newLogger logs to standard error, one JSON object per line, including the logs of the libraries.
func newLogger(name string) (logr.Logger, error) {
	l, err := level(name)
	if err != nil {
		return logr.Logger{}, err
	}

	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(l)
	config.EncoderConfig.TimeKey = "time"
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.DisableStacktrace = true
	// A flood of the same line is thinned out, 100 a second and every 100th after.
	config.Sampling = &zap.SamplingConfig{Initial: 100, Thereafter: 100}
	built, err := config.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("set up logging: %w", err)
	}

	logger := zapr.NewLogger(built)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
	return logger, nil
}
