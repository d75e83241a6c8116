import { useEffect, useState } from 'preact/hooks';

/** A Store holds one value and tells who listens when it changes. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const tell of [...this.listeners]) tell();
  }

  listen(tell: () => void): () => void {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  }
}

/** use reads a store in a component, which is drawn anew when it changes. */
export function use<T>(store: Store<T>): T {
  const [, draw] = useState(0);
  useEffect(() => {
    draw((n) => n + 1); // what changed between drawing and listening
    return store.listen(() => draw((n) => n + 1));
  }, [store]);
  return store.value;
}
