package shell
import ("testing";"os";"strings";"fmt";"github.com/bawn-dev/bawn/internal/shell/grammar")
func show(l Line) string {
	var b strings.Builder
	for _,o:=range l.Opaque { fmt.Fprintf(&b,"\n    OPAQUE %s: %q", o.Reason,o.Text)}
	for i,c:=range l.Commands { fmt.Fprintf(&b,"\n    %d %v ",i,c.Via); for _,a:=range c.Assigns{fmt.Fprintf(&b,"%s:=%s ",a.Name,w(a.Value))}; for _,x:=range c.Words{b.WriteString(w(x)+" ")}
	for _,r:=range c.Redirects{fmt.Fprintf(&b,"{%s%s %s %q}",r.Fd,r.Op,w(r.Target),r.Text.Text)}
	fmt.Fprintf(&b," in=%v/%d dirs=%v L%v B%v un=%q", c.Stdin.From,c.Stdin.Command,c.Dirs,c.Loop,c.Background,c.Unproven)}
	return b.String()
}
func w(x grammar.Word) string { s:=fmt.Sprintf("%q",x.Text); if x.Glob{s+="*"}; if x.Vague!=""{s+="?("+x.Vague+")"}; if x.Split{s+="S"}; if x.Unset!=nil{s+=fmt.Sprint("U",x.Unset)}; if x.Below!=nil{s+=fmt.Sprint("<",x.Below)}; return s}
func TestScratch(t *testing.T){
	dec:=strings.NewReplacer("␤","\n","␍","\r","␉","\t","␀","\x00","␛","\x1b","␈","\b")
	for _,f:=range []string{"benign","dangerous"}{
		b,_:=os.ReadFile("/work/shared/corpus/"+f+".tsv")
		n,op:=0,0
		for _,l:=range strings.Split(string(b),"\n"){
			p:=strings.Split(l,"\t"); if len(p)<2{continue}
			cat:=p[1]
			line:=Read(dec.Replace(p[0]),Context{Dir:"/work/p",Home:"/home/u",Env:map[string]string{"TMPDIR":"/tmp/s"}})
			n++
			if len(line.Opaque)>0{op++}
			if f=="benign" && len(line.Opaque)>0 || f=="dangerous" && len(line.Opaque)==0 && (strings.HasPrefix(cat,"evade")||strings.HasPrefix(cat,"arith")||strings.HasPrefix(cat,"wrapper")||cat=="env-poison") || os.Getenv("ALL")!="" {
				fmt.Printf("%s [%s] %s%s\n",f,cat,p[0],show(line))
			}
		}
		fmt.Println(f,n,op)
	}
}
