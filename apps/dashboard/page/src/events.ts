// Server-sent events from a fetch: EventSource sends no headers of ours.
export type Dispatch = (event: string, data: string) => void;

// Takes the text as it comes, in pieces of any size, and dispatches what is complete.
export class EventParser {
  private unfinished: string[] = []; // of a line: a large one comes in many pieces, and is joined once
  private event = '';
  private data = '';

  constructor(private readonly dispatch: Dispatch) {}

  feed(text: string): void {
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.unfinished.push(text.slice(from, end));
      const line = this.unfinished.join('');
      this.unfinished = [];
      from = end + 1;
      this.take(line);
    }
    if (from < text.length) this.unfinished.push(text.slice(from));
  }

  private take(line: string): void {
    if (line.startsWith('event: ')) this.event = line.slice(7);
    else if (line.startsWith('data: ')) this.data = line.slice(6);
    else if (line === '') {
      if (this.event) this.dispatch(this.event, this.data);
      this.event = this.data = '';
    }
  }
}

// Resolves when the server ends it; rejects when it can't be read.
export async function readEvents(body: ReadableStream<Uint8Array>, dispatch: Dispatch): Promise<void> {
  const parser = new EventParser(dispatch);
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
  }
}
