// How many records there were, over time.
import { useEffect, useState } from 'preact/hooks';
import { signedOut } from '../live.ts';
import { audit, type Filter } from '../wire/api.ts';
import type { Bucket } from '../wire/messages.ts';

const height = 64;
const width = 12;

/** Timeline draws the records that a filter chooses; a bar chooses its time. */
export function Timeline({ filter, round, onChoose }: { filter: Filter; round: number; onChoose: (since: Date, until: Date) => void }) {
  const [buckets, set] = useState<readonly Bucket[]>([]);
  useEffect(() => {
    let current = true;
    audit.timeline(filter).then((b) => current && set(b), signedOut);
    return () => {
      current = false;
    };
  }, [filter, round]);
  const most = Math.max(1, ...buckets.map((b) => b.allowed + b.denied + b.other));
  const [first, last] = [buckets[0]?.since, buckets.at(-1)?.since];
  if (!first || !last) return null;
  const choose = (i: number) => {
    const [since, until] = [buckets[i]?.since, buckets[i + 1]?.since ?? new Date()];
    if (since) onChoose(since, until);
  };
  return (
    <figure class="timeline">
      <svg viewBox={`0 0 ${buckets.length * width} ${height}`} preserveAspectRatio="none" role="img" aria-label={summary(buckets)}>
        {buckets.map((b, i) => <Bar key={i} of={b} x={i * width} scale={height / most} onClick={() => choose(i)} />)}
      </svg>
      <figcaption><span>{brief(first)}</span><span class="legend"><i class="allowed" />allowed <i class="denied" />denied <i class="other" />other</span><span>{brief(last)}</span></figcaption>
    </figure>
  );
}

function Bar({ of: b, x, scale, onClick }: { of: Bucket; x: number; scale: number; onClick: () => void }) {
  const parts: [string, number][] = [['allowed', b.allowed], ['other', b.other], ['denied', b.denied]];
  let y = height;
  return (
    <g onClick={onClick}>
      <rect class="back" x={x} y={0} width={width - 2} height={height} />
      {parts.map(([name, n]) => <rect key={name} class={name} x={x} y={(y -= n * scale)} width={width - 2} height={n * scale} />)}
    </g>
  );
}

const sum = (buckets: readonly Bucket[], of: 'allowed' | 'denied' | 'other') => buckets.reduce((n, b) => n + b[of], 0);

/** summary is the timeline in words. */
export function summary(buckets: readonly Bucket[]): string {
  return `From ${brief(buckets[0]?.since)} to ${brief(buckets.at(-1)?.since)}: ${sum(buckets, 'allowed')} allowed, ${sum(buckets, 'denied')} denied, ${sum(buckets, 'other')} other`;
}

function brief(time: Date | undefined): string {
  return time?.toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }) ?? '';
}
