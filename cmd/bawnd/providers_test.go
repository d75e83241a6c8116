package main

import (
	"reflect"
	"testing"

	"github.com/bawn-dev/bawn/internal/config"
)

// TestEveryDockerOptionArrives: what the configuration says about the provider
// docker reaches it, whatever is added.
func TestEveryDockerOptionArrives(t *testing.T) {
	var c config.DockerOptions
	from := reflect.ValueOf(&c).Elem()
	for i := range from.NumField() {
		if from.Type().Field(i).Name == "AcceptEscapes" {
			continue // the provider of sessions has no use for it; containers of guests have
		}
		one := config.DockerOptions{}
		f := reflect.ValueOf(&one).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"x"}))
		default:
			t.Fatalf("%s is a %v", from.Type().Field(i).Name, f.Kind())
		}
		if reflect.DeepEqual(dockerOptions(one), dockerOptions(config.DockerOptions{})) {
			t.Errorf("%s of the configuration is not handed to the provider", from.Type().Field(i).Name)
		}
	}
}
